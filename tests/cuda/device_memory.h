// Device memory of tests: one cudaMalloc an array, so that the emulated device (and
// compute-sanitizer on a real one) sees the end of each.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "halftone/core/check.h"

namespace halftone::testing {

inline void CheckCuda(cudaError_t error) {
  HT_CHECK(error == cudaSuccess, "a CUDA call of a test failed");
}

class DeviceMemory {
 public:
  explicit DeviceMemory(size_t bytes) : bytes_(bytes) {
    if (bytes > 0) CheckCuda(cudaMalloc(&data_, bytes));
  }
  DeviceMemory(const void* host, size_t bytes) : DeviceMemory(bytes) { Write(host); }
  ~DeviceMemory() { cudaFree(data_); }
  DeviceMemory(DeviceMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  DeviceMemory& operator=(DeviceMemory&&) = delete;

  // Null if empty.
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  void Write(const void* host) {
    if (bytes_ > 0) CheckCuda(cudaMemcpy(data_, host, bytes_, cudaMemcpyHostToDevice));
  }
  // Waits for all work of the device. Fails where the work did.
  cudaError_t Read(void* host) const {
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess || bytes_ == 0) return error;
    return cudaMemcpy(host, data_, bytes_, cudaMemcpyDeviceToHost);
  }

 private:
  void* data_ = nullptr;
  size_t bytes_;
};

// An array of T, from and to vectors.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values)
      : memory_(values.data(), values.size() * sizeof(T)), size_(values.size()) {}
  explicit DeviceArray(size_t size) : memory_(size * sizeof(T)), size_(size) {}
  T* data() const { return static_cast<T*>(memory_.data()); }
  std::vector<T> Get() const {
    std::vector<T> values(size_);
    CheckCuda(memory_.Read(values.data()));
    return values;
  }

 private:
  DeviceMemory memory_;
  size_t size_;
};

}  // namespace halftone::testing
