export type { Cache, CacheOptions, Change, Projected, WatchedCache } from "./cache.ts"
export { type CacheDeps, type CacheObserver, createCache, sharedCaches } from "./create-cache.ts"
