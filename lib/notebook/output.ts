/**
 * Where a cell's output goes: to the notebook when this process is a tslab kernel, else nowhere.
 *
 * tslab's public display functions send one mime type at a time. Its internal writer sends several in one
 * output, and updates an output in place by its display id; that is what is reached for here.
 * tslab itself is never loaded by this file: outside a kernel it costs a second and would be of no use.
 */
import { createRequire } from 'node:module';
import { z } from 'zod';
import type { MimeBundle } from './messages.js';

const require = createRequire(import.meta.url);

type Writer = (
  content: { data: MimeBundle; metadata: MimeBundle; transient: { display_id?: string } },
  update: boolean,
) => void;

/** The kernel's module, once it has run a cell. */
const Jupyter = z.object({
  lastWriteDisplayData: z.custom<Writer>((value) => typeof value === 'function'),
});

export interface NotebookOutput {
  readonly data: MimeBundle;
  /** Per mime type, such as `{ 'image/png': { width: 800 } }` in CSS pixels. */
  readonly metadata?: MimeBundle;
  /** Names this output so that a later one with the same name and `update` replaces it. */
  readonly displayId?: string;
  readonly update?: boolean;
}

/** True inside a tslab kernel that is running, or has run, a cell. */
export function inNotebook(): boolean {
  return findWriter() !== undefined;
}

/** Adds one output to the running cell, or replaces one. @throws outside a notebook: ask `inNotebook()` first */
export function writeOutput({ data, metadata = {}, displayId, update = false }: NotebookOutput): void {
  const write = findWriter();
  if (!write) throw new Error('there is no notebook to write to: this process is not a tslab kernel');
  write({ data, metadata, transient: displayId === undefined ? {} : { display_id: displayId } }, update);
}

/** Looked up each time, because tslab makes a new writer for every cell. */
function findWriter(): Writer | undefined {
  for (const [path, module] of Object.entries(require.cache))
    if (/[\\/]tslab[\\/]dist[\\/]jupyter\.js$/.test(path)) {
      const jupyter = Jupyter.safeParse(module?.exports);
      if (jupyter.success) return jupyter.data.lastWriteDisplayData;
    }
  return undefined;
}
