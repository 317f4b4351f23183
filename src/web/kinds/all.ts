import type { KindInfo } from "../wire.ts"
import { alternateImageSourcePage } from "./alternateimagesource.ts"
import { canaryPage } from "./canary.ts"
import type { KindPage } from "./kind.ts"
import { plainPages } from "./plain.ts"
import { serviceImagePage } from "./serviceimage.ts"
import { workloadPages } from "./workload.ts"

const own: readonly KindPage[] = [serviceImagePage, alternateImageSourcePage, canaryPage]

/** Every kind that is shown, in this order. A kind without a page of its own is shown by its conditions. */
export const pages: readonly KindPage[] = [...own, ...plainPages(own.map(({ resource }) => resource)), ...workloadPages]

export const pageOf = (kind: string): KindPage | undefined => pages.find(({ resource }) => resource.plural === kind)

export const infoOf = ({ resource, view, short, actions }: KindPage): KindInfo => ({
  id: resource.plural,
  kind: resource.kind,
  short,
  isNamespaced: resource.namespaced,
  view,
  actions: [...actions],
})
