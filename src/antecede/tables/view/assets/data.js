// Reader of the binary block of antecede.tables.view.binary_block; arrays are views, not copies.

const VIEWS = {
  u8: Uint8Array,
  i32: Int32Array,
  u32: Uint32Array,
  f32: Float32Array,
  f64: Float64Array,
};
const UTF8 = new TextDecoder("utf-8");

/** Decode base64 and zlib; return a promise of an ArrayBuffer. */
export async function inflate(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

/** A dictionary-encoded text column; values are decoded on first use. */
export class Texts {
  constructor(codes, bytes, ends) {
    this.codes = codes;
    this.bytes = bytes;
    this.ends = ends;
    this.known = new Array(ends.length);
  }

  get size() {
    return this.ends.length;
  }

  /** Return the text of a code; "" for -1. */
  value(code) {
    if (code < 0) return "";
    let found = this.known[code];
    if (found === undefined) {
      const start = code ? this.ends[code - 1] : 0;
      found = UTF8.decode(this.bytes.subarray(start, this.ends[code]));
      this.known[code] = found;
    }
    return found;
  }

  /** Return the text of a row; "" without one. */
  at(row) {
    return this.value(this.codes[row]);
  }
}

/** Return the content of a block: { meta, arrays, texts(name) }. */
export function unpackBlock(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(UTF8.decode(new Uint8Array(buffer, 4, length)));
  const arrays = {};
  for (const [name, [type, at, size]] of Object.entries(header.arrays)) {
    arrays[name] = new VIEWS[type](buffer, 4 + length + at, size);
  }
  const made = {};
  return {
    meta: header.meta,
    arrays,
    texts(name) {
      if (!(`${name}.ends` in arrays)) return null;
      made[name] ??= new Texts(arrays[name], arrays[`${name}.bytes`], arrays[`${name}.ends`]);
      return made[name];
    },
  };
}
