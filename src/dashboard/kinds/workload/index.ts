import { kindView } from "../kind-view.ts"
import { Details } from "./Details.tsx"
import { Summary } from "./List.tsx"

export const workload = kindView("workload", Summary, Details)
