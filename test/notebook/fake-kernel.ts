/**
 * A kernel that does what the code of a cell names, for what a real one is too slow or too well-behaved for:
 * `forge` publishes messages signed with another key, `die` ends the process, `hang` never answers, `late`
 * publishes after its reply; any other code is printed back. Started by kernel.test.ts.
 */
import { createHmac, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Publisher, Router } from 'zeromq';

const connection = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as Record<string, string>;
const shell = new Router();
const published = new Publisher();
const bind = (socket: Router | Publisher, port: string) => socket.bind(`tcp://${connection.ip}:${port}`);
await Promise.all([bind(shell, connection.shell_port!), bind(published, connection.iopub_port!)]);

function frames(type: string, parent: object, content: object, key = connection.key!): Buffer[] {
  const header = { msg_id: randomUUID(), msg_type: type, session: 'fake', username: 'fake', version: '5.3' };
  const parts = [header, parent, {}, content].map((part) => Buffer.from(JSON.stringify(part)));
  const hmac = createHmac('sha256', key);
  for (const part of parts) hmac.update(part);
  return [Buffer.from('<IDS|MSG>'), Buffer.from(hmac.digest('hex')), ...parts];
}

for await (const request of shell) {
  const parent = JSON.parse(request[3]!.toString()) as { msg_type: string };
  const { code = '' } = JSON.parse(request[6]!.toString()) as { code?: string };
  if (parent.msg_type === 'shutdown_request') process.exit(0);
  if (code === 'die') {
    console.error('out of luck');
    process.exit(7);
  }
  if (code === 'hang') continue;
  const text = (text: string, key?: string) =>
    published.send(frames('stream', parent, { name: 'stdout', text }, key));
  if (code === 'forge') await text('forged', 'another key');
  else if (code !== 'late') await text(code);
  const type = parent.msg_type.replace('request', 'reply');
  if (code === 'forge')
    await shell.send([request[0]!, ...frames(type, parent, { status: 'error' }, 'another key')]);
  await shell.send([request[0]!, ...frames(type, parent, { status: 'ok' })]);
  await published.send(frames('status', parent, { execution_state: 'idle' }));
  if (code === 'late') await text('late');
}
