import type { KubeObject } from "./resource.ts"

/** Tells the user's story on the object itself. Repeats are counted on one Event instead of filling the list. */
export type EventRecorder = {
  record(
    object: KubeObject & { apiVersion: string; kind: string },
    event: { type: "Normal" | "Warning"; reason: string; message: string; action?: string },
  ): void
  /** Resolves when everything recorded so far was sent or given up. */
  flush(): Promise<void>
}
