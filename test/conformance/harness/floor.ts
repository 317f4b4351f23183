import type { Answer, Json } from "./script.ts"

/** A Kubernetes that scripts are run on. */
export type Ground = {
  name: string
  send(request: RawRequest): Promise<RawAnswer>
  kubectl: string
  kubeconfig: string
  /** Home of kubectl, where it keeps what it has discovered. */
  home: string
  /** Host of the registry whose images the nodes can pull. */
  registry: string
  /** Host of one that answers with faults: see `images.ts`. */
  faulty: string
  /** How long a script waits for what it waits for. */
  patienceMs: number
  /** What is this floor's alone and means nothing, with the word that stands for it. */
  words: [string | RegExp, string][]
  close(): Promise<void>
}

export type RawRequest = {
  method: string
  path: string
  headers: Record<string, string>
  body?: string | undefined
  signal: AbortSignal
  longLived?: boolean
}

export type RawAnswer = {
  status: number
  headers: Record<string, string | undefined>
  body: AsyncIterable<Uint8Array>
}

/** The whole answer, parsed where it is JSON. */
export async function whole({ status, headers, body }: RawAnswer): Promise<Answer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return { status, headers, body: parsed(Buffer.concat(chunks).toString("utf8")) }
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
