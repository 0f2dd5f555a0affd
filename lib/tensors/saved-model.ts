/**
 * The bytes of a TensorFlow SavedModel: a graph of operations in the one format that tfjs-node's binding loads.
 *
 * Field numbers are those of tensorflow/core/protobuf/{saved_model,meta_graph}.proto and
 * tensorflow/core/framework/{graph,node_def,attr_value,tensor,tensor_shape,versions}.proto. Left out: variables,
 * signatures, functions, devices – a traced graph has none.
 */
import { PbfWriter } from 'pbf';

/** An attribute of an operation, by the name of its field in AttrValue. */
export type GraphAttribute =
  | { readonly s: string }
  | { readonly i: number }
  | { readonly f: number }
  | { readonly b: boolean }
  | { readonly type: number }
  | { readonly shape: 'unknown' }
  | { readonly tensor: GraphTensor };

/** A constant; `type` is TensorFlow's DataType. */
export interface GraphTensor {
  readonly type: number;
  readonly shape: readonly number[];
  readonly values: Float32Array | Int32Array | Uint8Array;
}

/** An operation; inputs are names of nodes, `name:1` for an output that is not the first. */
export interface GraphNode {
  readonly name: string;
  readonly op: string;
  readonly inputs: readonly string[];
  readonly attributes: Readonly<Record<string, GraphAttribute>>;
}

/** GraphDef versions: a producer that every TensorFlow since 1.15 reads. */
const PRODUCER = 1395;
const MIN_CONSUMER = 12;
/** The tag under which the one graph is found. */
export const SERVE = 'serve';

/** The content of `saved_model.pb`. */
export function encodeSavedModel(nodes: readonly GraphNode[]): Uint8Array {
  const pbf = new PbfWriter();
  pbf.writeVarintField(1, 1); // saved_model_schema_version
  pbf.writeMessage(2, writeMetaGraph, nodes);
  return pbf.finish();
}

function writeMetaGraph(nodes: readonly GraphNode[], pbf: PbfWriter): void {
  pbf.writeMessage(1, (tag, info) => info.writeStringField(4, tag), SERVE); // meta_info_def.tags
  pbf.writeMessage(2, writeGraph, nodes);
}

function writeGraph(nodes: readonly GraphNode[], pbf: PbfWriter): void {
  for (const node of nodes) pbf.writeMessage(1, writeNode, node);
  const versions = (_: null, version: PbfWriter) => {
    version.writeVarintField(1, PRODUCER);
    version.writeVarintField(2, MIN_CONSUMER);
  };
  pbf.writeMessage(4, versions, null);
}

function writeNode({ name, op, inputs, attributes }: GraphNode, pbf: PbfWriter): void {
  pbf.writeStringField(1, name);
  pbf.writeStringField(2, op);
  for (const input of inputs) pbf.writeStringField(3, input);
  for (const entry of Object.entries(attributes)) pbf.writeMessage(5, writeAttribute, entry);
}

function writeAttribute([name, value]: readonly [string, GraphAttribute], pbf: PbfWriter): void {
  pbf.writeStringField(1, name);
  pbf.writeMessage(2, writeValue, value);
}

function writeValue(value: GraphAttribute, pbf: PbfWriter): void {
  if ('s' in value) pbf.writeStringField(2, value.s);
  else if ('i' in value) pbf.writeVarintField(3, value.i);
  else if ('f' in value) pbf.writeFloatField(4, value.f);
  else if ('b' in value) pbf.writeBooleanField(5, value.b);
  else if ('type' in value) pbf.writeVarintField(6, value.type);
  else if ('shape' in value) pbf.writeMessage(7, (_, shape) => shape.writeBooleanField(3, true), null);
  else pbf.writeMessage(8, writeTensor, value.tensor);
}

function writeTensor({ type, shape, values }: GraphTensor, pbf: PbfWriter): void {
  pbf.writeVarintField(1, type);
  pbf.writeMessage(2, writeShape, shape);
  pbf.writeBytesField(4, new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
}

function writeShape(shape: readonly number[], pbf: PbfWriter): void {
  for (const size of shape) pbf.writeMessage(2, (n, dimension) => dimension.writeVarintField(1, n), size);
}
