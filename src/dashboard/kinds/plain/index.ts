import { kindView } from "../kind-view.ts"
import { Details } from "./Details.tsx"
import { Summary } from "./List.tsx"

export const plain = kindView("plain", Summary, Details)
