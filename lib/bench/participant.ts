/**
 * A participant as a process: started with its script, asked one request at a time, watched for its memory, ended
 * with everything it started. Left out: what is asked (protocol.ts) and in which order (run.ts).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { z } from 'zod';
import { check } from '../files.js';
import { failureSchema, type Opened, openedSchema, type Request, type Workload } from './protocol.js';

/** One request may take this long; then the participant is ended. */
const TIME_LIMIT_MS = 15 * 60_000;

/** How to start one. */
export interface ParticipantSpec {
  /** As in the tables: `tfjs-node`, `wasm`, `transformers`, `trl`, `pytorch`. */
  readonly name: string;
  readonly side: 'ours' | 'peer';
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export class Participant {
  readonly #child: ChildProcess;
  readonly #replies: AsyncIterator<string>;
  #stderr = '';
  #opened: Opened | undefined;

  constructor(readonly spec: ParticipantSpec) {
    this.#child = spawn(spec.program, [...spec.args], {
      env: { ...process.env, ...spec.env },
      stdio: ['pipe', 'ignore', 'pipe', 'pipe'],
      detached: true, // a group of its own, so that what it started ends with it
    });
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-4000);
    });
    this.#child.on('error', (error) => {
      this.#stderr += error.message;
    });
    this.#child.stdin!.on('error', () => undefined); // it has ended: the missing reply says so
    const replies = createInterface({ input: this.#child.stdio[3] as Readable });
    this.#replies = replies[Symbol.asyncIterator]();
  }

  get name(): string {
    return this.spec.name;
  }

  /** What it said of itself. @throws before `open` */
  get opened(): Opened {
    if (!this.#opened) throw new Error(`${this.name} has not been opened`);
    return this.#opened;
  }

  async open(workload: Workload): Promise<void> {
    this.#opened = await this.ask({ ask: 'open', workload }, openedSchema);
  }

  /** One request and its checked reply. @throws naming the participant when it fails, ends or takes too long */
  async ask<T extends z.ZodType>(request: Request, schema: T): Promise<z.infer<T>> {
    this.#child.stdin!.write(`${JSON.stringify(request)}\n`);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () =>
          reject(new Error(`${this.name}: no reply to '${request.ask}' in ${TIME_LIMIT_MS / 60_000} min`)),
        TIME_LIMIT_MS,
      );
    });
    try {
      const { value, done } = await Promise.race([this.#replies.next(), late]);
      if (done) throw new Error(`${this.name} ended at '${request.ask}':\n${this.#stderr.trim()}`);
      const reply: unknown = JSON.parse(value);
      const failure = failureSchema.safeParse(reply);
      if (failure.success) throw new Error(`${this.name} failed at '${request.ask}': ${failure.data.error}`);
      return check(schema, reply, `the reply of ${this.name} to '${request.ask}'`);
    } finally {
      clearTimeout(timer);
    }
  }

  /** From here on the peak of memory counts anew (Linux only). */
  resetPeak(): void {
    const path = `/proc/${this.#child.pid}/clear_refs`;
    if (existsSync(path)) writeFileSync(path, '5');
  }

  /** The largest resident set since `resetPeak`, in bytes; undefined where the system does not tell. */
  peakBytes(): number | undefined {
    const path = `/proc/${this.#child.pid}/status`;
    if (!existsSync(path)) return undefined;
    return parsePeak(readFileSync(path, 'utf8'));
  }

  close(): void {
    const { pid, exitCode, signalCode } = this.#child;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // it has just ended
    }
  }
}

/** `VmHWM` of a /proc status file, in bytes. */
export function parsePeak(status: string): number | undefined {
  const found = /^VmHWM:\s+(\d+) kB$/m.exec(status);
  return found ? Number(found[1]) * 1024 : undefined;
}
