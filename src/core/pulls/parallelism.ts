/** On how many nodes a job may pull at once: a percentage is rounded up, so that a small share is still one node. */
export function parallelismOf(written: number | string, nodes: number): number {
  if (typeof written === "number") return written
  const percent = Number.parseInt(written, 10)
  return Math.ceil((nodes * percent) / 100)
}
