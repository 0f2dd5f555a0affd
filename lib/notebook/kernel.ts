/**
 * A Jupyter client for one kernel: starts it on the loopback interface with a secret key of its own, runs
 * cells one at a time, notices when it dies, and leaves nothing behind (process, sockets, connection file).
 *
 * The kernel is tslab's, found in node_modules; no Python and no Jupyter installation takes part. (JupyterLab and
 * VS Code get the same kernel by `npm run lab`, cli/lab.ts.)
 * A cell that writes more than about 450 times without an `await` in between hangs tslab, under Jupyter too: it
 * does not wait for its own sends, ZeroMQ refuses them, and it reports that by writing more. The time limit ends it.
 * Left out: stdin requests, comms (widgets), several requests at once. A runner that is itself killed with
 * SIGKILL cannot stop its kernel.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Dealer, Subscriber } from 'zeromq';
import {
  decodeMessage,
  ExecuteReply,
  encodeRequest,
  type Message,
  type Published,
  readPublished,
} from './messages.js';

const START_TIMEOUT_MS = 60_000;
const START_ATTEMPTS = 3;
const STOP_TIMEOUT_MS = 1_500;
/** tslab aborts every request that reaches it within 200 ms of an error. */
const PAUSE_AFTER_ERROR_MS = 300;
/** A subscriber may lose what is published before it has joined, so the first request is repeated. */
const HANDSHAKE_MS = 300;
const LAST_WORDS_MS = 100;
const LOG_CHARACTERS = 8_000;

/** The kernel's process has ended by itself. */
export class KernelDiedError extends Error {
  override readonly name = 'KernelDiedError';
}

/** A cell has run longer than it was allowed to. */
export class CellTimeoutError extends Error {
  override readonly name = 'CellTimeoutError';
}

export interface KernelOptions {
  /** The kernel's working directory: what a cell's imports and relative paths start from. */
  readonly cwd: string;
  /** Command line of the kernel; `{connection_file}` stands for its connection file. Default: tslab. */
  readonly argv?: readonly string[];
}

export interface ExecuteOptions {
  readonly timeoutMs: number;
  /** Called for everything the kernel publishes for this cell, also for what comes after the cell's end. */
  readonly onPublished: (message: Published) => void;
  /** Interrupts the cell; the promise then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The command line that starts tslab's TypeScript kernel. */
export function tslabArgv(): string[] {
  const root = dirname(createRequire(import.meta.url).resolve('tslab/package.json'));
  return [process.execPath, join(root, 'bin', 'tslab'), 'kernel', '--config-path', '{connection_file}'];
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject).listen(0, '127.0.0.1', resolve);
      });
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export class Kernel {
  readonly #key = randomUUID();
  readonly #session = randomUUID();
  readonly #folder = mkdtempSync(join(tmpdir(), 'agon-kernel-'));
  readonly #shell = new Dealer({ linger: 0 });
  readonly #published = new Subscriber({ linger: 0, receiveHighWaterMark: 0 });
  readonly #onReply = new Map<string, (message: Message) => void>();
  readonly #onPublished = new Map<string, (message: Published) => void>();
  readonly #dead: Promise<never>;
  #process!: ChildProcess;
  #fail!: (error: Error) => void;
  /** The end of what the process itself has written (not the cells' output, which comes as messages). */
  #log = '';
  #stopping = false;
  #mayExecuteAt = 0;
  readonly #onExit = () => this.#kill();

  private constructor() {
    this.#dead = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.#dead.catch(() => {}); // Read by whoever waits; nobody may be waiting.
  }

  /**
   * Starts a kernel and waits until it answers (about 3 s for tslab).
   * @throws KernelDiedError when it ends instead, Error when it does not answer within a minute; both carry
   *   what the process has printed
   */
  static async start(options: KernelOptions): Promise<Kernel> {
    for (let attempt = 1; ; attempt++) {
      const kernel = new Kernel();
      try {
        await kernel.#start(options.argv ?? tslabArgv(), options.cwd);
        return kernel;
      } catch (error) {
        await kernel.stop();
        if (attempt === START_ATTEMPTS || !kernel.#lostPort()) throw error;
      }
    }
  }

  /** The process id, for messages and tests. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  async #start(argv: readonly string[], cwd: string): Promise<void> {
    const [shell_port, iopub_port, stdin_port, control_port, hb_port] = await freePorts(5);
    const file = join(this.#folder, 'connection.json');
    const connection = {
      ...{ transport: 'tcp', ip: '127.0.0.1', kernel_name: 'tslab' },
      ...{ shell_port, iopub_port, stdin_port, control_port, hb_port },
      ...{ key: this.#key, signature_scheme: 'hmac-sha256' },
    };
    writeFileSync(file, JSON.stringify(connection), { mode: 0o600 });
    const { FORCE_COLOR: _, ...env } = process.env;
    const [command, ...args] = argv.map((part) => part.replace('{connection_file}', file));
    // A process group of its own: Ctrl-C reaches the runner alone, and stopping takes a cell's children along.
    this.#process = spawn(command!, args, {
      cwd,
      env: { ...env, NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    for (const stream of [this.#process.stdout!, this.#process.stderr!])
      stream.on('data', (chunk: Buffer) => {
        this.#log = (this.#log + chunk.toString()).slice(-LOG_CHARACTERS);
      });
    this.#process.once('error', (error) =>
      this.#fail(new KernelDiedError(`the kernel did not start: ${error.message}`)),
    );
    this.#process.once('exit', (code, signal) => {
      const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
      const words = () => this.#log && `:\n${this.#log.trimEnd()}`;
      // Its last words may still be in the pipe, which a child of its own can hold open for ever.
      setTimeout(() => this.#fail(new KernelDiedError(`the kernel died (${how})${words()}`)), LAST_WORDS_MS);
    });
    process.once('exit', this.#onExit);
    this.#shell.connect(`tcp://127.0.0.1:${shell_port}`);
    this.#published.connect(`tcp://127.0.0.1:${iopub_port}`);
    this.#published.subscribe();
    void this.#receive(this.#shell, (message) => this.#onReply.get(message.parentId ?? '')?.(message));
    void this.#receive(this.#published, (message) => {
      const content = readPublished(message);
      if (content) this.#onPublished.get(message.parentId ?? '')?.(content);
    });
    await this.#handshake();
  }

  /** True when another process has taken a port between our finding it free and the kernel's binding it. */
  #lostPort(): boolean {
    return /EADDRINUSE|address already in use/i.test(this.#log);
  }

  /** Repeats a request until its reply and a published `idle` for it have both come. */
  async #handshake(): Promise<void> {
    const deadline = Date.now() + START_TIMEOUT_MS;
    while (Date.now() < deadline) {
      const request = this.#request('kernel_info_request', {}, () => {});
      const answered = await Promise.race([
        request.done.then(() => true),
        sleep(HANDSHAKE_MS).then(() => false),
        this.#dead,
      ]);
      if (answered) return;
      if (this.#lostPort()) break;
    }
    throw new Error(
      `the kernel did not answer within ${START_TIMEOUT_MS / 1000} s${this.#log && `:\n${this.#log}`}`,
    );
  }

  /** Sends a request; `done` resolves with the reply once the kernel has also published that it is idle. */
  #request(
    type: string,
    content: object,
    onPublished: (message: Published) => void,
  ): { done: Promise<Message> } {
    const id = randomUUID();
    const done = new Promise<Message>((resolve, reject) => {
      let reply: Message | undefined;
      let idle = false;
      const advance = () => {
        if (!reply || !idle) return;
        this.#onReply.delete(id);
        resolve(reply);
      };
      this.#onReply.set(id, (message) => {
        reply = message;
        advance();
      });
      this.#onPublished.set(id, (message) => {
        if (message.type !== 'status') onPublished(message);
        else idle ||= message.content.execution_state === 'idle';
        advance();
      });
      this.#shell
        .send(encodeRequest(type, content, { key: this.#key, session: this.#session, id }))
        .catch(reject);
    });
    return { done };
  }

  async #receive(socket: AsyncIterable<Buffer[]>, onMessage: (message: Message) => void): Promise<void> {
    try {
      for await (const frames of socket) {
        const message = decodeMessage(frames, this.#key);
        if (message) onMessage(message);
      }
    } catch (error) {
      if (!this.#stopping) this.#fail(error as Error);
    }
  }

  /**
   * Runs one cell and waits for its end.
   * @throws CellTimeoutError after `timeoutMs` (the kernel is still busy then: stop it), KernelDiedError, or
   *   the reason of `signal`
   */
  async execute(code: string, options: ExecuteOptions): Promise<ExecuteReply> {
    options.signal?.throwIfAborted();
    await sleep(Math.max(0, this.#mayExecuteAt - Date.now()));
    const content = { code, silent: false, store_history: true, user_expressions: {}, allow_stdin: false };
    const request = this.#request(
      'execute_request',
      { ...content, stop_on_error: true },
      options.onPublished,
    );
    let timer: NodeJS.Timeout | undefined;
    let onAbort: (() => void) | undefined;
    const cut = new Promise<never>((_, reject) => {
      const message = `the cell ran longer than ${options.timeoutMs / 1000} s`;
      timer = setTimeout(() => reject(new CellTimeoutError(message)), options.timeoutMs);
      onAbort = () => {
        this.interrupt();
        reject(options.signal?.reason);
      };
      options.signal?.addEventListener('abort', onAbort, { once: true });
    });
    try {
      const reply = ExecuteReply.parse((await Promise.race([request.done, cut, this.#dead])).content);
      if (reply.status !== 'ok') this.#mayExecuteAt = Date.now() + PAUSE_AFTER_ERROR_MS;
      return reply;
    } finally {
      clearTimeout(timer);
      if (onAbort) options.signal?.removeEventListener('abort', onAbort);
    }
  }

  /**
   * Interrupts the running cell: it ends with an error, the kernel and its variables stay. tslab may miss an
   * interrupt in the first moment of a cell, while it passes from compiling to running it.
   */
  interrupt(): void {
    this.#process.kill('SIGINT');
  }

  /** Ends the kernel, politely first, and removes its connection file. May be called twice. */
  async stop(): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    if (this.#isRunning()) {
      const gone = new Promise((resolve) => this.#process.once('exit', resolve));
      this.#request('shutdown_request', { restart: false }, () => {}).done.catch(() => {});
      await Promise.race([gone, sleep(STOP_TIMEOUT_MS)]);
    }
    this.#kill(); // The kernel where it has not gone, and what a cell has started and left running.
    this.#shell.close();
    this.#published.close();
    process.removeListener('exit', this.#onExit);
  }

  #isRunning(): boolean {
    const child: ChildProcess | undefined = this.#process;
    return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
  }

  /** Kills the kernel's process group at once; also what happens when this process exits early. */
  #kill(): void {
    const child: ChildProcess | undefined = this.#process;
    if (child?.pid !== undefined)
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        child.kill('SIGKILL'); // No such group any more, or no groups on this system.
      }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
