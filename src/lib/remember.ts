/**
 * A function of a text whose results are remembered and shared. A hundred thousand objects contain the same few texts, and
 * the copies would outweigh the objects. Once `most` texts are remembered it starts over, so that untrusted
 * texts do not accumulate.
 */
export function remember<T>(most: number, make: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>()
  return text => {
    const found = known.get(text)
    if (found !== undefined || known.has(text)) return found as T
    if (known.size >= most) known.clear()
    const made = make(text)
    known.set(text, made)
    return made
  }
}
