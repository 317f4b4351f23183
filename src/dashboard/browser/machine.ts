// The only file of the page that takes time and chance from the machine.
export const wallNow = (): number => performance.timeOrigin + performance.now()
export const chance = (): number => Math.random()
/** Runs `work` once, `ms` from now; the returned function takes it back. */
export function after(ms: number, work: () => void): () => void {
  const timer = setTimeout(work, ms)
  return () => clearTimeout(timer)
}
export function every(ms: number, work: () => void): () => void {
  const timer = setInterval(work, ms)
  return () => clearInterval(timer)
}
