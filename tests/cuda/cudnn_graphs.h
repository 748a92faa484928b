// Graphs and a device for tests of cuDNN's API: nothing here needs a GPU, of the real library
// either, which chooses and builds plans for a device that it is told of.
#pragma once

#include <string>
#include <vector>

#include "halftone/core/check.h"
#include "halftone/kernels/cuda/cudnn/graph.h"

namespace halftone::testing {

using cuda::CudnnDescriptor;
using Ints = std::vector<int64_t>;

// An NVIDIA H100, from its data sheet.
inline const CudnnDescriptor& TestDevice() {
  static auto* const device = [] {
    const std::string json =
        R"({"deviceName": "NVIDIA H100 80GB HBM3", "cudaDeviceId": 0, "deviceVer": 900,
            "driverVer": 13000, "totalGlobalMem": 85024112640,
            "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
            "regsPerBlock": 65536, "multiProcessorCount": 132, "warpSize": 32,
            "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
            "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32,
            "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0,
            "isTccDriver": 0, "supportCoopLaunch": 1, "smClockRateKHz": 1980000,
            "memClockRateKHz": 2619000, "l2CacheSize": 52428800})";
    auto* const d = new CudnnDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "device");
    d->Set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
           static_cast<int64_t>(json.size()), json.data());
    const absl::Status status = d->Finalize();
    HT_CHECK(status.ok(), "the test device");
    return d;
  }();
  return *device;
}

// Strides of an [N,C,H,W] tensor that lies channels-last.
inline Ints ChannelsLast(const Ints& d) { return {d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]}; }

// Not finalized.
inline CudnnDescriptor TensorOf(const Ints& dims, const Ints& strides, int64_t uid,
                                int64_t alignment = 16, bool is_virtual = false) {
  CudnnDescriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "t");
  d.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
      .Set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid)
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  if (is_virtual) d.Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  return d;
}
inline CudnnDescriptor TensorOf(const Ints& dims, int64_t uid) {
  return TensorOf(dims, ChannelsLast(dims), uid);
}

inline CudnnDescriptor ConvolutionOf(const Ints& padding = {1, 1}, const Ints& stride = {1, 1},
                                     const Ints& dilation = {1, 1}, int64_t axes = 2) {
  CudnnDescriptor d(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "c");
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  d.Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, axes)
      .Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode)
      .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, padding)
      .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, padding)
      .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, stride)
      .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilation);
  return d;
}

inline CudnnDescriptor ForwardOf(const CudnnDescriptor& x, const CudnnDescriptor& w,
                                 const CudnnDescriptor& y, const CudnnDescriptor& convolution) {
  CudnnDescriptor d(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, "op");
  d.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1.0F)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0.0F);
  return d;
}

inline CudnnDescriptor GraphOf(const CudnnDescriptor& op) {
  CudnnDescriptor d(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "graph");
  d.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, op);
  return d;
}

// Finalized; ends the program if that fails.
inline CudnnDescriptor Final(CudnnDescriptor d) {
  const absl::Status status = d.Finalize();
  HT_CHECK(status.ok(), "a descriptor of a test");
  return d;
}

}  // namespace halftone::testing
