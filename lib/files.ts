/**
 * Files that cannot be half written: everything goes to a temporary neighbour first and is then renamed, so
 * a reader sees the old file or the new one, never a part. And files that come in are checked: an error names
 * the file, the field, what was found and what is allowed.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, truncateSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import writeFileAtomicPackage from 'write-file-atomic';
import type { z } from 'zod';

/** The repository's root (this file runs from dist/lib). */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Writes a file whole or not at all; makes its folder. */
export function writeFileAtomic(path: string, data: string | Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileAtomicPackage.sync(
    path,
    typeof data === 'string' ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength),
  );
}

/** Writes a value as indented JSON, atomically. */
export function writeJson(path: string, value: unknown): void {
  writeFileAtomic(path, `${JSON.stringify(value, null, 2)}\n`);
}

/** Reads JSON and checks it. @throws naming the file and each field that does not fit */
export function readJson<T extends z.ZodType>(path: string, schema: T): z.infer<T> {
  return check(
    schema,
    parseJson(() => readFileSync(path, 'utf8'), path),
    path,
  );
}

function parseJson(read: () => string, where: string): unknown {
  try {
    return JSON.parse(read());
  } catch (error) {
    throw new Error(`${where}: not readable as JSON: ${(error as Error).message}`);
  }
}

/** Checks a value against a schema. @throws naming `where` and each field that does not fit */
export function check<T extends z.ZodType>(schema: T, value: unknown, where: string): z.infer<T> {
  const result = schema.safeParse(value, { reportInput: true });
  if (result.success) return result.data;
  const lines = result.error.issues.map((issue) => {
    const field = issue.path.join('.') || '(whole)';
    const found = issue.input === undefined ? '' : ` (found ${JSON.stringify(issue.input)?.slice(0, 80)})`;
    return `  ${field}: ${issue.message}${found}`;
  });
  throw new Error(`${where} does not fit:\n${lines.join('\n')}`);
}

/** Appends one record to a JSON-lines file. */
export function appendJsonl(path: string, record: unknown): void {
  mkdirSync(dirname(path), { recursive: true });
  appendFileSync(path, `${JSON.stringify(record)}\n`);
}

/**
 * Reads a JSON-lines file; a last line without its newline is what a killed process left, and is cut off the
 * file so that the next append starts a line of its own.
 * @throws naming the file and the line that is not JSON or does not fit
 */
export function readJsonl<T extends z.ZodType>(path: string, schema: T): z.infer<T>[] {
  if (!existsSync(path)) return [];
  const text = readFileSync(path, 'utf8');
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  if (whole.length < text.length) truncateSync(path, Buffer.byteLength(whole));
  return whole.split('\n').flatMap((line, i) => {
    const where = `${path} line ${i + 1}`;
    return line === ''
      ? []
      : [
          check(
            schema,
            parseJson(() => line, where),
            where,
          ),
        ];
  });
}
