export type { Change } from "./shelf.ts"
export { type Commit, createStore, type Delivery, type HistoryEntry, type Store, type StoreOptions } from "./store.ts"
