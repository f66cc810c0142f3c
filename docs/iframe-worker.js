// A site that is opened from disk may start no Worker. There a worker's script runs in a hidden frame instead, which
// has the same events; the search of the theme looks for the name IFrameWorker to know it.
if (location.protocol === "file:") {
  const script = (frame, address) =>
    new Promise((loaded, failed) => {
      const element = frame.document.createElement("script");
      element.src = address;
      element.onload = loaded;
      element.onerror = failed;
      frame.document.body.appendChild(element);
    });

  window.IFrameWorker = class extends EventTarget {
    constructor(address) {
      super();
      this.onmessage = this.onerror = null;
      const element = document.createElement("iframe");
      element.hidden = true;
      document.body.appendChild(element);
      this.element = element;
      this.frame = element.contentWindow;
      this.frame.postMessage = (data) => this.tell(this, data);
      this.frame.importScripts = (...addresses) => Promise.all(addresses.map((each) => script(this.frame, each)));
      this.ready = script(this.frame, new URL(address, document.baseURI).href);
      this.ready.catch(() => this.dispatchEvent(new Event("error")));
    }

    tell(target, data) {
      const event = new MessageEvent("message", { data });
      target.dispatchEvent(event);
      if (typeof target.onmessage === "function") target.onmessage(event);
    }

    postMessage(data) {
      this.ready.then(() => this.tell(this.frame, data));
    }

    terminate() {
      this.element.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
