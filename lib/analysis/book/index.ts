/** A results folder as one document: `bookHtml(await gatherBook(folder))`, `bookPdf(...)`. */
export { type Book, type BookOptions, gatherBook } from './book.js';
export { bookHtml } from './html.js';
export { bookPdf } from './pdf.js';
