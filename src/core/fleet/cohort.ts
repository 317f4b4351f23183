import { hash32 } from "#lib/hash.ts"

/**
 * An object's place in the queue of its ServiceImage, from 0 to 2³². It depends only on that name and the object's uid,
 * so adding or removing objects never reorders the others, 1 % is inside 5 % is inside 25 %, and objects that got a
 * broken image first also get the fix first. Each ServiceImage has its own order: not always the same customers go
 * first.
 */
export const placeOf = (serviceImage: string, uid: string): number => hash32(`${serviceImage}/${uid}`)

const places = 2 ** 32

/** A share takes in the places below this number. */
export const endOf = (percent: number): number => (percent / 100) * places

/** The step that takes the place in: the first of the rising ends above it. */
export function cohortOf(place: number, ends: readonly number[]): number {
  const found = ends.findIndex(end => place < end)
  return found < 0 ? ends.length - 1 : found
}
