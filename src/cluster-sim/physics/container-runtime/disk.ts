/** The file system of one node that holds its images and the writable layers of its containers. */
export class Disk {
  readonly #imageBytes: () => number
  readonly #listeners = new Set<() => void>()
  #capacityBytes: number
  #otherBytes: number

  /** Unless given: 100 GiB, with images alone on it. */
  constructor(size: { capacityBytes?: number; otherBytes?: number }, imageBytes: () => number) {
    this.#capacityBytes = size.capacityBytes ?? 100 * 2 ** 30
    this.#otherBytes = size.otherBytes ?? 0
    this.#imageBytes = imageBytes
  }

  get capacityBytes(): number {
    return this.#capacityBytes
  }

  get freeBytes(): number {
    return Math.max(0, this.#capacityBytes - this.#otherBytes - this.#imageBytes())
  }

  /** Gives the node another disk, or more or fewer files beside its images. */
  set({ capacityBytes = this.#capacityBytes, otherBytes = this.#otherBytes }): void {
    this.#capacityBytes = capacityBytes
    this.#otherBytes = otherBytes
    for (const listener of this.#listeners) listener()
  }

  /** Called when the disk was set. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener)
  }

  /** What `statfs` of a container's root returns: exact, unlike the runtime's own numbers. */
  statfs(): { sizeBytes: number; freeBytes: number } {
    return { sizeBytes: this.capacityBytes, freeBytes: this.freeBytes }
  }
}
