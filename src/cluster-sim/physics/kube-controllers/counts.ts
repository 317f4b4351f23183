/** A count as in a status: zero is left out. */
export const positive = (name: string, count: number) => (count > 0 ? { [name]: count } : {})
