import { homedir } from "node:os"
import { join } from "node:path"

/** Where built programs and prepared images are kept between runs, outside the repository. */
export function cacheFolder(): string {
  return process.env.AIM_CACHE || join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "aim")
}

export const repository = join(import.meta.dirname, "..", "..")
