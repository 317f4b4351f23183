import type { QueryValues } from "./query-template.ts"

/** What a query may name, of a run that proves web-7d9f beside web. */
export const queryValues: QueryValues = {
  name: "web",
  namespace: "shop",
  target: "web-7d9f",
  source: "web",
  revision: "7d9f",
  service: "web",
  ingress: "web",
  route: "web",
  interval: "",
  variables: {},
}
