/**
 * From what a kernel publishes to the outputs of a notebook's cells: joins stream chunks, keeps the order, and
 * sends an update of a display to every output that shows it, in whichever cell that is.
 */
import type { Published } from './messages.js';
import type { CodeCell, Output } from './nbformat.js';

type DisplayOutput = Extract<Output, { output_type: 'display_data' | 'execute_result' }>;

export class OutputCollector {
  /** Display ids belong to the kernel's session and are not saved. */
  readonly #displays = new Map<string, DisplayOutput[]>();
  /** Cells whose outputs go as soon as the next one comes (`clear_output` with `wait`). */
  readonly #clearNext = new WeakSet<CodeCell>();

  /** Applies one message to `cell`. Returns the output that was added or changed, if any. */
  add(cell: CodeCell, message: Published): Output | undefined {
    if (message.type === 'status') return undefined;
    if (message.type === 'update_display_data') return this.#update(message.content);
    if (message.type === 'clear_output') {
      if (message.content.wait) this.#clearNext.add(cell);
      else cell.outputs.length = 0;
      return undefined;
    }
    if (this.#clearNext.delete(cell)) cell.outputs.length = 0;
    if (message.type === 'stream') return addStream(cell, message.content.name, message.content.text);
    if (message.type === 'error') {
      const { ename, evalue, traceback } = message.content;
      return push(cell, { output_type: 'error', ename, evalue, traceback });
    }
    const { data, metadata, transient } = message.content;
    const output: DisplayOutput =
      message.type === 'display_data'
        ? { output_type: 'display_data', data, metadata }
        : { output_type: 'execute_result', execution_count: cell.execution_count, data, metadata };
    const id = transient.display_id;
    if (id !== undefined) this.#displays.set(id, [...(this.#displays.get(id) ?? []), output]);
    return push(cell, output);
  }

  #update(content: Extract<Published, { type: 'update_display_data' }>['content']): Output | undefined {
    const shown = this.#displays.get(content.transient.display_id ?? '') ?? [];
    for (const output of shown) {
      output.data = content.data;
      output.metadata = content.metadata;
    }
    return shown.at(-1);
  }
}

/** The text a cell has written to one of its streams. */
export function streamText(cell: CodeCell, name: 'stdout' | 'stderr'): string {
  return cell.outputs.map((o) => (o.output_type === 'stream' && o.name === name ? o.text : '')).join('');
}

function addStream(cell: CodeCell, name: 'stdout' | 'stderr', text: string): Output {
  const last = cell.outputs.at(-1);
  if (last?.output_type !== 'stream' || last.name !== name)
    return push(cell, { output_type: 'stream', name, text });
  last.text += text;
  return last;
}

function push(cell: CodeCell, output: Output): Output {
  cell.outputs.push(output);
  return output;
}
