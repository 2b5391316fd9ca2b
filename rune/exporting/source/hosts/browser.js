let device, pipelines, groups, a = [], r = [], m;
const STORAGE = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
const bytes_of = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const padded = (bytes) => Math.max(4, Math.ceil(bytes / 4) * 4);
const memory = (bytes) => device.createBuffer({ size: padded(bytes), usage: STORAGE });
const grown = (buffer, bytes) => (buffer?.size >= bytes ? buffer : (buffer?.destroy(), memory(bytes)));
const rune_nearest = (number, last) => Math.min(Math.max(number, 0), last);

function send(target, bytes) {
  const block = new Uint8Array(padded(bytes.length));
  block.set(bytes);
  device.queue.writeBuffer(target, 0, block);
}

function store(target, to, number) {
  device.queue.writeBuffer(target, to, new Int32Array([number]));
}

function copy(source, at, target, to, bytes) {
  if (!bytes) return;
  const encoder = device.createCommandEncoder();
  const between = source === target ? memory(bytes) : null;
  if (between) encoder.copyBufferToBuffer(source, at, between, 0, bytes);
  encoder.copyBufferToBuffer(between ?? source, between ? 0 : at, target, to, bytes);
  device.queue.submit([encoder.finish()]);
}

async function fetched(source, at, bytes) {
  const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
  const staging = device.createBuffer({ size: padded(bytes), usage });
  copy(source, at, staging, 0, padded(bytes));
  await staging.mapAsync(GPUMapMode.READ);
  const result = new Uint8Array(staging.getMappedRange().slice(0, bytes));
  staging.destroy();
  return result;
}

async function load(source, at, bytes) {
  const word = new Uint8Array(4);
  word.set(await fetched(source, at, bytes));
  return new DataView(word.buffer).getInt32(0, true);
}

function layout_of(count) {
  const entry = (binding) => ({
    binding, visibility: GPUShaderStage.COMPUTE, buffer: { type: binding ? "storage" : "uniform" },
  });
  return device.createBindGroupLayout({ entries: Array.from({ length: count + 1 }, (_, k) => entry(k)) });
}

async function compile({ file, entry, count }) {
  const code = await (await fetch(new URL(file, import.meta.url))).text();
  const layout = device.createPipelineLayout({ bindGroupLayouts: [layout_of(count)] });
  const compute = { module: device.createShaderModule({ code }), entryPoint: entry };
  return device.createComputePipelineAsync({ layout, compute });
}

function prepare(buffers, words) {
  const size = Math.ceil(words.length / 4) * 16;
  const block = device.createBuffer({ size, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });
  device.queue.writeBuffer(block, 0, new Uint32Array(words));
  const entries = [block, ...buffers].map((buffer, binding) => ({ binding, resource: { buffer } }));
  return device.createBindGroup({ layout: layout_of(buffers.length), entries });
}

function launch(number, pipeline, count) {
  if (count <= 0) return;
  const wide = Math.min(count, 65535), high = Math.ceil(count / wide);
  const encoder = device.createCommandEncoder(), pass = encoder.beginComputePass();
  pass.setPipeline(pipelines[pipeline]);
  pass.setBindGroup(0, groups[number]);
  pass.dispatchWorkgroups(wide, high);
  pass.end();
  device.queue.submit([encoder.finish()]);
}
