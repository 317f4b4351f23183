/** Objects that could not be read, and are skipped: one hostile object must not stop the others. */
export function createUnreadable(onUnreadable: (key: string, error: unknown) => void) {
  const versions = new Map<string, string>()
  let inList = new Set<string>()
  return {
    versions,
    /** Reports an object only once while it stays unreadable. */
    skip(key: string, version: string, error: unknown) {
      inList.add(key)
      const isNews = !versions.has(key)
      versions.set(key, version)
      if (isNews) onUnreadable(key, error)
    },
    listed(key: string) {
      if (versions.has(key)) inList.add(key)
    },
    beginList({ historyIsNew }: { historyIsNew: boolean }) {
      inList = new Set()
      if (historyIsNew) versions.clear()
    },
    /** What was not in the list is gone. */
    endList() {
      for (const key of versions.keys()) if (!inList.has(key)) versions.delete(key)
    },
  }
}
