/**
 * Notebook files: the part of nbformat 4 that running a notebook reads and writes, checked on the way in and
 * written atomically, with the same bytes for the same content (no times, no random ids).
 *
 * Fields this file does not know (metadata of editors, attachments) pass through unchanged.
 * Source: nbformat's JSON schema, versions 4.0 to 4.5. Left out: nbformat 3 and signing ("trust").
 */
import { z } from 'zod';
import { readJson, writeFileAtomic } from '../files.js';
import { MimeBundle } from './messages.js';

/** Text that a file may hold as one string or as a list of lines. */
const Text = z.union([z.string(), z.array(z.string()).transform((lines) => lines.join(''))]);
const Metadata = z.record(z.string(), z.unknown());

/** Mime types that Jupyter's own writer splits into lines, so that a difference between two files is readable. */
const isSplitMime = (mime: string) => /^text\/|^(application\/javascript|image\/svg\+xml)$/.test(mime);

const Bundle = MimeBundle.transform((data) => {
  const join = (value: unknown) => (Array.isArray(value) ? value.join('') : value);
  return Object.fromEntries(
    Object.entries(data).map(([mime, value]) => [mime, /json$/.test(mime) ? value : join(value)]),
  );
});

const Output = z.discriminatedUnion('output_type', [
  z.object({ output_type: z.literal('stream'), name: z.enum(['stdout', 'stderr']), text: Text }),
  z.object({ output_type: z.literal('display_data'), data: Bundle, metadata: Metadata }),
  z.object({
    output_type: z.literal('execute_result'),
    execution_count: z.number().int().nullable(),
    data: Bundle,
    metadata: Metadata,
  }),
  z.object({
    output_type: z.literal('error'),
    ename: z.string(),
    evalue: z.string(),
    traceback: z.array(z.string()),
  }),
]);
export type Output = z.infer<typeof Output>;

const cellFields = {
  id: z
    .string()
    .regex(/^[\w-]{1,64}$/, 'a cell id has 1 to 64 letters, digits, - or _')
    .optional(),
  metadata: Metadata,
  source: Text,
};
const CodeCell = z.looseObject({
  cell_type: z.literal('code'),
  ...cellFields,
  execution_count: z.number().int().nullable(),
  outputs: z.array(Output),
});
export type CodeCell = z.infer<typeof CodeCell>;

const Notebook = z.looseObject({
  nbformat: z.literal(4),
  nbformat_minor: z.number().int().min(0),
  metadata: z.looseObject({
    kernelspec: z.looseObject({ name: z.literal('tslab') }).optional(),
  }),
  cells: z.array(
    z.discriminatedUnion('cell_type', [
      CodeCell,
      z.looseObject({ cell_type: z.literal('markdown'), ...cellFields }),
      z.looseObject({ cell_type: z.literal('raw'), ...cellFields }),
    ]),
  ),
});
export type Notebook = z.infer<typeof Notebook>;

/**
 * Reads a notebook; text comes as single strings.
 * @throws naming the file and each field that does not fit: not nbformat 4, another kernel than tslab, a cell
 *   without its fields
 */
export function readNotebook(path: string): Notebook {
  return readJson(path, Notebook);
}

/** Writes a notebook as Jupyter does: one space of indent, text as lists of lines. Atomic. */
export function writeNotebook(path: string, notebook: Notebook): void {
  const cells = notebook.cells.map((cell, i) => ({
    ...cell,
    id: cell.id ?? `cell-${i + 1}`, // Required since 4.5.
    source: splitLines(cell.source),
    ...(cell.cell_type === 'code' ? { outputs: cell.outputs.map(splitOutput) } : {}),
  }));
  const file = { ...notebook, nbformat_minor: Math.max(5, notebook.nbformat_minor), cells };
  writeFileAtomic(path, `${JSON.stringify(file, null, 1)}\n`);
}

function splitLines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function splitOutput(output: Output): object {
  if (output.output_type === 'stream') return { ...output, text: splitLines(output.text) };
  if (output.output_type === 'error') return output;
  const data = Object.entries(output.data).map(([mime, value]) => [
    mime,
    isSplitMime(mime) && typeof value === 'string' ? splitLines(value) : value,
  ]);
  return { ...output, data: Object.fromEntries(data) };
}
