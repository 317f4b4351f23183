import { hash32 } from "#lib/hash.ts"

/**
 * Where an object stands in the queue of its ServiceImage, from 0 to 2³². It depends on nothing but the two names, so
 * that whoever comes or goes moves nobody, 1 % is inside 5 % is inside 25 %, and who had the broken image first also
 * has the mended one first. Another ServiceImage has another order: not always the same customers go first.
 */
export const placeOf = (serviceImage: string, uid: string): number => hash32(`${serviceImage}/${uid}`)

const places = 2 ** 32

/** The places that a share takes in are those below this. */
export const endOf = (percent: number): number => (percent / 100) * places

/** The first of the rising ends that takes the place in. */
export function cohortOf(place: number, ends: readonly number[]): number {
  const found = ends.findIndex(end => place < end)
  return found < 0 ? ends.length - 1 : found
}
