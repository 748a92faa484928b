"""Compares what export_model wrote with onnxruntime: the checker passes, values agree.

By hand, with onnx and onnxruntime: python onnx_models.py DIR...
"""

import sys

import numpy as np
import onnx
import onnxruntime


def main():
    worst = 0.0
    for folder in sys.argv[1:]:
        path = f"{folder}/model.onnx"
        onnx.checker.check_model(path, full_check=True)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        feed = {session.get_inputs()[0].name: np.load(f"{folder}/in.npy")}
        got, wanted = session.run(None, feed)[0], np.load(f"{folder}/out.npy")
        error = np.abs(got - wanted).max() / max(1.0, np.abs(wanted).max())
        worst = max(worst, error)
        print(f"{folder}: {wanted.shape}, largest {np.abs(wanted).max():.4g}, error {error:.2e}")
    sys.exit(0 if worst <= 1e-4 else 1)


if __name__ == "__main__":
    main()
