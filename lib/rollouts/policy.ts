/**
 * A policy: the folder of a frozen base and an adapter on it, or the base alone. It is what jobs carry to a
 * worker; the base is loaded once per thread and shared by every job and both adapters.
 */
import { resolve } from 'node:path';
import { type Adapter, loadModel, type Model } from '../model/index.js';
import type { AdapterName } from '../records.js';

export interface Policy {
  /** Folder of the base model (Hugging Face layout). */
  readonly base: string;
  readonly adapter: Adapter | undefined;
}

/**
 * The policy of a name.
 * @throws when its adapter is not among `adapters`
 */
export function policyOf(
  base: string,
  adapters: Readonly<Partial<Record<string, Adapter>>>,
  name: AdapterName,
): Policy {
  const adapter = name === 'base' ? undefined : adapters[name];
  if (name !== 'base' && !adapter)
    throw new Error(
      `adapter '${name}' is not there; there are: ${Object.keys(adapters).join(', ') || 'none'}`,
    );
  return { base, adapter };
}

const loaded = new Map<string, Model>();

/** The base model of this thread, loaded at first use and held until the thread ends. */
export function sharedModel(folder: string): Model {
  const key = resolve(folder);
  let model = loaded.get(key);
  if (!model) {
    model = loadModel(key);
    loaded.set(key, model);
  }
  return model;
}
