import type { ReadonlySignal } from "@preact/signals"
import { createContext } from "preact"
import { useContext } from "preact/hooks"
import type { Session } from "#web/wire.ts"
import type { Address } from "./address.ts"
import type { Api } from "./client.ts"

/** What every part of the page may use. Stories give their own. */
export type Surroundings = {
  session: Session
  api: Api
  /** The cluster's time; it moves once a second. */
  now: ReadonlySignal<number>
  /** False while nothing is heard from the server: the picture stays, and nothing can be done. */
  isLive: ReadonlySignal<boolean>
  address: ReadonlySignal<Address>
  /** Shows another address. `isStep`: the browser's button leads back to the one before. */
  go: (address: Address, isStep?: boolean) => void
}

const context = createContext<Surroundings | undefined>(undefined)
export const SurroundingsProvider = context.Provider

export function useSurroundings(): Surroundings {
  const surroundings = useContext(context)
  if (!surroundings) throw new Error("a part of the page is drawn outside of it")
  return surroundings
}
