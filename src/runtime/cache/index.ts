export type { Cache, CacheOptions, Change, Projected } from "./cache.ts"
export { type CacheDeps, type CacheObserver, createCache, sharedCaches } from "./create-cache.ts"
