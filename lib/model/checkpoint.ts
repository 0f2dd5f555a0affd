/**
 * Models as Hugging Face folders: config.json beside model.safetensors (or its shards). What is read here is
 * what transformers writes, and the reverse. Left out: the tokenizer's files, which belong to text/.
 */
import { join } from 'node:path';
import { writeJson } from '../files.js';
import { parameterShapes, readConfig } from './config.js';
import {
  openSafetensorsFolder,
  type TensorSource,
  type WriteOptions,
  writeSafetensors,
} from './safetensors.js';
import { downloadModel, type Model, uploadModel } from './transformer.js';

/**
 * Reads a model folder into the backend, one tensor at a time.
 * @throws naming the file and the tensor when one is missing, unknown or of another shape than config.json says
 */
export function loadModel(folder: string): Model {
  const config = readConfig(join(folder, 'config.json'));
  const source = openSafetensorsFolder(folder);
  try {
    checkParameters(source, parameterShapes(config), folder, config.tie_word_embeddings);
    return uploadModel(config, (name) => source.read(name));
  } finally {
    source.close();
  }
}

/** Writes config.json and model.safetensors, each whole or not at all. F32 unless told otherwise. */
export function saveModel(folder: string, model: Model, options: Pick<WriteOptions, 'dtype'> = {}): void {
  const dtype = { F32: 'float32', F16: 'float16', BF16: 'bfloat16' }[options.dtype ?? 'F32'];
  writeSafetensors(join(folder, 'model.safetensors'), downloadModel(model), options);
  writeJson(join(folder, 'config.json'), { ...model.config, dtype });
}

function checkParameters(
  source: TensorSource,
  expected: ReadonlyMap<string, readonly number[]>,
  folder: string,
  tied: boolean,
): void {
  for (const [name, shape] of expected) {
    const found = source.shapes.get(name);
    if (!found) throw new Error(`${folder}: tensor '${name}' [${shape}] is missing`);
    if (found.join() !== shape.join())
      throw new Error(
        `${source.fileOf(name)}: tensor '${name}' has shape [${found}], config.json wants [${shape}]`,
      );
  }
  for (const [name, shape] of source.shapes) {
    // Some writers store a tied head beside the embedding; it is the same matrix.
    if (expected.has(name) || (tied && name === 'lm_head.weight')) continue;
    throw new Error(
      `${source.fileOf(name)}: tensor '${name}' [${shape}] is not part of the model that config.json describes`,
    );
  }
}
