/**
 * The Jupyter wire protocol, as far as running cells needs it: one message is the frames
 * `<IDS|MSG>`, signature, header, parent header, metadata, content, where the signature is the HMAC-SHA256 of
 * the four JSON frames under the connection's key.
 *
 * Source: "Messaging in Jupyter", section "The Wire Protocol", version 5.3.
 * Left out: binary buffers, comms, stdin requests.
 */
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';

const DELIMITER = Buffer.from('<IDS|MSG>');

/** A bundle of representations of one output, by mime type. */
export const MimeBundle = z.record(z.string(), z.unknown());
export type MimeBundle = z.infer<typeof MimeBundle>;

const Display = z.object({
  data: MimeBundle,
  metadata: z.record(z.string(), z.unknown()).default({}),
  transient: z.object({ display_id: z.string().optional() }).default({}),
});

/** What a kernel publishes while it works on a cell; other kinds are of no use here and are dropped. */
const Published = z.discriminatedUnion('type', [
  z.object({ type: z.literal('status'), content: z.object({ execution_state: z.string() }) }),
  z.object({
    type: z.literal('stream'),
    content: z.object({ name: z.enum(['stdout', 'stderr']), text: z.string() }),
  }),
  z.object({ type: z.literal('display_data'), content: Display }),
  z.object({ type: z.literal('update_display_data'), content: Display }),
  z.object({ type: z.literal('execute_result'), content: Display }),
  z.object({
    type: z.literal('error'),
    content: z.object({ ename: z.string(), evalue: z.string(), traceback: z.array(z.string()) }),
  }),
  z.object({ type: z.literal('clear_output'), content: z.object({ wait: z.boolean().default(false) }) }),
]);
export type Published = z.infer<typeof Published>;

/** How a kernel answers an execute request. tslab says no more than the status. */
export const ExecuteReply = z.object({
  status: z.enum(['ok', 'error', 'abort', 'aborted']),
  ename: z.string().optional(),
  evalue: z.string().optional(),
});
export type ExecuteReply = z.infer<typeof ExecuteReply>;

/** A message that has passed the signature check. */
export interface Message {
  readonly type: string;
  /** The request this message belongs to. */
  readonly parentId: string | undefined;
  readonly content: unknown;
}

const Header = z.object({ msg_id: z.string(), msg_type: z.string() });
const ParentHeader = z.object({ msg_id: z.string().optional() });

function sign(frames: readonly Buffer[], key: string): string {
  const hmac = createHmac('sha256', key);
  for (const frame of frames) hmac.update(frame);
  return hmac.digest('hex');
}

/** The frames of a request. `session` names this client, `id` the request. */
export function encodeRequest(
  type: string,
  content: object,
  { key, session, id = randomUUID() }: { key: string; session: string; id?: string },
): Buffer[] {
  const header = {
    msg_id: id,
    username: 'agon',
    session,
    date: new Date().toISOString(),
    msg_type: type,
    version: '5.3',
  };
  const frames = [header, {}, {}, content].map((part) => Buffer.from(JSON.stringify(part)));
  return [DELIMITER, Buffer.from(sign(frames, key)), ...frames];
}

/** Reads a message; `undefined` when it is malformed or not signed with `key`: such a message is ignored. */
export function decodeMessage(frames: readonly Buffer[], key: string): Message | undefined {
  const start = frames.findIndex((frame) => frame.equals(DELIMITER));
  const signature = frames[start + 1];
  const parts = frames.slice(start + 2, start + 6);
  if (start < 0 || signature === undefined || parts.length < 4) return undefined;
  const expected = Buffer.from(sign(parts, key));
  if (signature.length !== expected.length || !timingSafeEqual(signature, expected)) return undefined;
  const [header, parent, , content] = parts.map((part) => JSON.parse(part.toString()) as unknown);
  const own = Header.safeParse(header);
  if (!own.success) return undefined;
  return { type: own.data.msg_type, parentId: ParentHeader.safeParse(parent).data?.msg_id, content };
}

/** What a message on the publishing socket says; `undefined` for kinds this client has no use for. */
export function readPublished(message: Message): Published | undefined {
  return Published.safeParse({ type: message.type, content: message.content }).data;
}
