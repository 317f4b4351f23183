import { compareVersions, noVersion } from "#lib/resource-version.ts"

/** How far a store has come in the server's history, and which deletions an event may still be older than. */
export function createHistory(onProgress: (version: string) => void) {
  let progress = noVersion
  /** The server promised to send nothing older on this watch: an older event is a repetition. */
  let floor = noVersion
  let lastBookmark = noVersion
  /** Versions of deletions that are newer than `floor`: without them a late event would restore a deleted object. */
  const deletions = new Map<string, string>()

  function advance(version: string) {
    if (compareVersions(version, progress) <= 0) return
    progress = version
    onProgress(version)
  }

  return {
    /** Everything up to this version has been shown. */
    get progress() {
      return progress
    },
    deletions,
    isRepeated: (version: string) => compareVersions(version, floor) <= 0,
    advance,
    /** The server was restored to an earlier state. */
    rewind() {
      progress = noVersion
    },
    /** A watch begins at this version. */
    beginAt(version: string) {
      floor = lastBookmark = version
      deletions.clear()
    },
    bookmark(version: string) {
      if (compareVersions(version, lastBookmark) <= 0) return
      advance(version)
      // One bookmark behind, so that an event that a bookmark overtook does not count as a repetition.
      floor = lastBookmark
      lastBookmark = version
      for (const [key, deletion] of deletions) if (compareVersions(deletion, floor) <= 0) deletions.delete(key)
    },
  }
}
