/** Runs a compiled script of test/support in a Node process of its own: a backend is chosen once per process. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** What the script printed, as JSON. @throws with its stderr when it fails */
export async function runScript(name: string, ...args: readonly string[]): Promise<unknown> {
  const script = fileURLToPath(new URL(`./${name}`, import.meta.url));
  const env = { ...process.env, AGON_BACKEND: undefined };
  const { stdout } = await promisify(execFile)(process.execPath, [script, ...args], { env, timeout: 60_000 });
  return JSON.parse(stdout);
}
