/** Random hexadecimal digits. */
export function hexadecimal({ next }: { next(): number }, digits: number): string {
  let text = ""
  while (text.length < digits)
    text += Math.floor(next() * 2 ** 32)
      .toString(16)
      .padStart(8, "0")
  return text.slice(0, digits)
}
