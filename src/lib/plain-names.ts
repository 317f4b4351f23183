/**
 * Makes `__proto__` a name like any other in this process: what others wrote is read and merged by name, and writing to
 * this one would change what an object inherits instead of what it has. The way to an object's prototype is
 * `Object.getPrototypeOf`, which stays.
 */
Reflect.deleteProperty(Object.prototype, "__proto__")
