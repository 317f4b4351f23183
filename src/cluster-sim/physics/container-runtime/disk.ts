/** The file system of one node that holds its images and the writable layers of its containers. */
export class Disk {
  /** Can be set: a node with another disk, or other files that come and go. */
  capacityBytes: number
  otherBytes: number
  readonly #imageBytes: () => number

  constructor(size: { capacityBytes?: number; otherBytes?: number }, imageBytes: () => number) {
    this.capacityBytes = size.capacityBytes ?? 100 * 2 ** 30
    this.otherBytes = size.otherBytes ?? 0
    this.#imageBytes = imageBytes
  }

  get freeBytes(): number {
    return Math.max(0, this.capacityBytes - this.otherBytes - this.#imageBytes())
  }

  /** What `statfs` of a container's root returns: exact, unlike the runtime's own numbers. */
  statfs(): { capacityBytes: number; freeBytes: number } {
    return { capacityBytes: this.capacityBytes, freeBytes: this.freeBytes }
  }
}
