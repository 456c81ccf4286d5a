// A saved page has what the server would answer in it, in compressed blocks: the first one what every view needs, each
// other one some runs, from a number on.
const blocks = [...document.querySelectorAll('script[type="application/gzip"]')];
const opened = new Map();

const read = async block => {
  const zipped = Uint8Array.from(atob(block.textContent), c => c.charCodeAt(0));
  return new Response(new Blob([zipped]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
};

export const isSaved = blocks.length > 0;

// answer is what the server has answered to a request.
export async function answer(address) {
  const [, run] = address.match(/^api\/runs\/(\d+)/) || [0, 0];
  const block = blocks.findLast(b => Number(b.dataset.from) <= run);
  if (!opened.has(block)) opened.set(block, read(block));
  return (await opened.get(block))[address];
}
