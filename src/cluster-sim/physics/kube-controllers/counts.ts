/** A count as a status holds it: zero is left out. */
export const positive = (name: string, count: number) => (count > 0 ? { [name]: count } : {})
