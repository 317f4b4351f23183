import { batch, computed, type Signal, signal } from "@preact/signals"
import { render } from "preact"
import type { ErrorAnswer, Frame, Page, Session, Tick } from "#web/wire.ts"
import { App, type Freshness } from "../App.tsx"
import { type Address, formatAddress, parseAddress } from "../address.ts"
import { silenceMs } from "../backoff.ts"
import { apiOf, openSession, Refusal } from "../client.ts"
import { applyFrame, type Feeds } from "../feeds.ts"
import type { Notice } from "../hub.ts"
import { SignIn } from "../SignIn.tsx"
import { clusterTime } from "../words.ts"
import { openLink } from "./link.ts"
import { every, wallNow } from "./machine.ts"

const base = new URL(".", location.href).href
const stored = `aim ${base}`
const root = document.getElementById("page")!

void start()

/** A key in the address counts before what is stored; without both, a proxy in front may send a token. */
async function start(token?: string): Promise<void> {
  const key = new URLSearchParams(location.hash.slice(1)).get("key")
  // The key is used up: it must not stay in the history or in a copied address.
  if (location.hash) history.replaceState(null, "", location.pathname + location.search)
  const kept = key || token ? null : localStorage.getItem(stored)
  try {
    const request = key ? { key } : token ? { token } : {}
    const session = kept ? (JSON.parse(kept) as Session) : await openSession(base, request)
    localStorage.setItem(stored, JSON.stringify(session))
    run(session)
  } catch (error) {
    signIn(error instanceof Refusal ? error.answer : undefined)
  }
}

function signIn(answer: ErrorAnswer | undefined) {
  localStorage.removeItem(stored)
  // A typed token is for a server with TLS: over a plain connection it could be read on the way.
  const onToken = location.protocol === "https:" ? (token: string) => void start(token) : undefined
  render(<SignIn answer={answer} onToken={onToken} />, root)
}

function run(session: Session) {
  const first = parseAddress(location.search)
  const address = signal<Address>(first.address)
  const unknown = signal(first.unknown)
  const feeds: Feeds = new Map()
  const versions = new Map<string, Signal<number>>()
  const versionOf = (name: string) => {
    const known = versions.get(name) ?? signal(0)
    versions.set(name, known)
    return known
  }
  const tick = signal<Tick & { heardAt: number }>({ time: wallNow(), speed: 1, heardAt: wallNow() })
  const wall = signal(wallNow())
  const lastHeard = signal(wallNow())
  const trouble = signal("")
  const now = computed(() => clusterTime(tick.value, Math.max(0, wall.value - tick.value.heardAt)))
  const freshness = computed<Freshness>(() => {
    const silent = wall.value - lastHeard.value
    return {
      silentSeconds: silent < silenceMs ? 0 : Math.floor(silent / 1000),
      asOf: clusterTime(tick.value, Math.max(0, lastHeard.value - tick.value.heardAt)),
      message: trouble.value,
    }
  })
  const isLive = computed(() => freshness.value.silentSeconds === 0)

  const take = (frame: Frame) => {
    lastHeard.value = wallNow()
    if (frame.type === "hello" || frame.type === "tick")
      tick.value = { time: frame.time, speed: frame.speed, heardAt: wallNow() }
    if (frame.type === "end") return signIn({ error: "NoSession", message: frame.message })
    const feed = applyFrame(feeds, frame)
    if (feed !== undefined) versionOf(feed).value++
  }
  const hear = (notice: Notice) =>
    batch(() => {
      if (notice.type === "frame") return take(notice.frame)
      if (notice.type === "refused") return signIn({ error: "NoSession", message: notice.message })
      trouble.value = notice.type === "lost" ? notice.message : ""
    })
  const link = openLink(session.session, hear)
  let asked = ""
  const show = () => {
    const { object } = address.value
    const pages: Page[] = [{ page: "overview" }, ...(object ? [{ page: "details" as const, ...object }] : [])]
    if (JSON.stringify(pages) === asked) return
    asked = JSON.stringify(pages)
    link.show(pages)
  }
  const go = (next: Address, isStep = false) => {
    address.value = next
    unknown.value = []
    const isElsewhere = isStep && formatAddress(next) !== formatAddress(parseAddress(location.search).address)
    if (isElsewhere) history.pushState(null, "", formatAddress(next))
    else history.replaceState(null, "", formatAddress(next))
    show()
  }
  addEventListener("popstate", () => {
    const { address: next, unknown: parts } = parseAddress(location.search)
    address.value = next
    unknown.value = parts
    show()
  })
  every(1000, () => {
    // A hidden tab draws nothing; its clock is right again when it is shown.
    if (document.visibilityState === "visible") wall.value = wallNow()
  })
  document.addEventListener("visibilitychange", () => {
    wall.value = wallNow()
  })
  show()
  const surroundings = { session, api: apiOf(base, session.session), now, isLive, address, go }
  const feedNamed = (name: string) => {
    versionOf(name).value
    return feeds.get(name)
  }
  render(<App surroundings={surroundings} feedNamed={feedNamed} freshness={freshness} unknown={unknown} />, root)
}
