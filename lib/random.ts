/**
 * Seeded randomness by name: every use of chance asks for its own stream, `stream(seed, 'rollout', step, row)`,
 * so a result depends on what is drawn and never on the order or the process in which it is drawn. There is
 * no hidden state to save: a resumed run asks for the same names and gets the same numbers.
 *
 * Generator: sfc32 (Chris Doty-Humphrey, PractRand), seeded by hashing the names with FNV-1a and murmur3's
 * finaliser. Left out: cryptographic strength.
 */

/** A stream of random numbers. */
export interface Random {
  /** Uniform in [0, 1), with 32 bits. */
  uniform(): number;
  /** Uniform integer in [0, n). */
  int(n: number): number;
  /** Standard normal (Box-Muller). */
  normal(): number;
  /** One element, each equally likely. @throws on an empty list */
  pick<T>(items: readonly T[]): T;
  /** One name by its share; shares sum to 1 and are gone through in the order they are written in. */
  pickShare<K extends string>(shares: Readonly<Record<K, number>>): K;
  /** A shuffled copy (Fisher-Yates). */
  shuffle<T>(items: readonly T[]): T[];
}

/** The 32-bit hash of a name; stable across machines, used for streams and for splits. */
export function hash32(text: string, salt = 0): number {
  let h = (0x811c9dc5 ^ salt) >>> 0;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193) >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** The stream that belongs to these names. Same names, same numbers; any other name, independent numbers. */
export function stream(...names: readonly (string | number)[]): Random {
  const key = names.join('\u001f');
  let [a, b, c, d] = [hash32(key, 1), hash32(key, 2), hash32(key, 3), 1];
  const next = (): number => {
    const t = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + t) | 0;
    return t >>> 0;
  };
  for (let i = 0; i < 12; i++) next();
  const uniform = () => next() / 4294967296;
  const int = (n: number) => Math.floor(uniform() * n);
  return {
    uniform,
    int,
    normal: () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform()),
    pick: (items) => {
      if (items.length === 0) throw new Error('cannot pick from an empty list');
      return items[int(items.length)]!;
    },
    pickShare: <K extends string>(shares: Readonly<Record<K, number>>) => {
      const names = Object.keys(shares) as K[];
      let at = uniform();
      const found = names.find((name) => {
        at -= shares[name];
        return at < 0;
      });
      return found ?? names.at(-1)!;
    },
    shuffle: (items) => {
      const out = [...items];
      for (let i = out.length - 1; i > 0; i--) {
        const j = int(i + 1);
        [out[i], out[j]] = [out[j]!, out[i]!];
      }
      return out;
    },
  };
}
