import type { Script } from "../harness/script.ts"
import { containers } from "./containers.ts"
import { images } from "./images.ts"
import { restart } from "./restart.ts"
import { stops } from "./stops.ts"

/** Every script; one list for every floor. */
export const scripts: Script[] = [...containers, ...stops, ...images, ...restart]
