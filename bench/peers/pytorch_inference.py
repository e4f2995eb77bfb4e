"""pytorch_inference.py eager|onnx NETWORK FOLDER THREADS SECONDS: features of JPEG pictures by a network of torchvision, with PyTorch
as it comes or with ONNX Runtime; prints pictures per second. Decoding is Pillow's, in as many threads."""
import concurrent.futures
import itertools
import os
import sys
import tempfile
import time

import numpy
import torch
import torchvision
from PIL import Image

BATCH = 16
MEAN = numpy.array([0.485, 0.456, 0.406], numpy.float32)
DEVIATION = numpy.array([0.229, 0.224, 0.225], numpy.float32)


def read(path):
    """The middle 224 x 224 of a picture whose shorter side is 256, normalised."""
    with Image.open(path) as picture:
        picture.draft("RGB", (256, 256))
        picture = picture.convert("RGB")
        scale = 256 / min(picture.size)
        picture = picture.resize([round(side * scale) for side in picture.size], Image.BILINEAR)
        left, top = (picture.size[0] - 224) // 2, (picture.size[1] - 224) // 2
        pixels = numpy.asarray(picture.crop((left, top, left + 224, top + 224)), numpy.float32) / 255
    return ((pixels - MEAN) / DEVIATION).transpose(2, 0, 1)


def network(name):
    model = getattr(torchvision.models, name)(weights=None).eval()
    if hasattr(model, "fc"):
        model.fc = torch.nn.Identity()
    else:
        model.classifier = torch.nn.Identity()
    return model


def runner(kind, name, threads):
    model = network(name)
    torch.set_num_threads(threads)
    if kind == "eager":
        model = model.to(memory_format=torch.channels_last)

        def run(batch):
            with torch.inference_mode():
                return model(torch.from_numpy(batch).to(memory_format=torch.channels_last))
        return run
    import onnxruntime
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "network.onnx")
        torch.onnx.export(model, (torch.zeros(BATCH, 3, 224, 224),), file, input_names=["x"])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return lambda batch: session.run(None, {"x": batch})


def main():
    kind, name, folder, threads, seconds = sys.argv[1:]
    run = runner(kind, name, int(threads))
    files = itertools.cycle(sorted(os.path.join(folder, file) for file in os.listdir(folder)))
    with concurrent.futures.ThreadPoolExecutor(int(threads)) as pool:
        def step():
            batch = numpy.ascontiguousarray(numpy.stack(list(pool.map(read, itertools.islice(files, BATCH)))))
            run(batch)
        step()
        begin, pictures = time.monotonic(), 0
        while time.monotonic() - begin < float(seconds):
            step()
            pictures += BATCH
        print(f"{pictures / (time.monotonic() - begin):.3f}")


main()
