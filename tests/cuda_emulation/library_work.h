// What the emulated libraries, cuBLASLt and cuDNN, need of the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <string>

namespace halftone::emulation {

// Whether p is an address of device memory, live or not.
bool IsDevicePointer(const void* p);
// Whether all of [p, p + bytes) lies in one live allocation of device memory.
bool IsDeviceMemory(const void* p, size_t bytes);
// For messages: "byte 12 of allocation #3 of 8 bytes, freed", or that it is no device memory.
std::string DescribePointer(const void* p);

// Appends a library's kernel to the stream, or to the graph that it captures. `run` may touch
// device memory; it must own what it uses of the host's.
cudaError_t StreamWork(cudaStream_t stream, std::function<void()> run);

// Keeps the text for LastReport and prints it.
void Report(const std::string& text);

}  // namespace halftone::emulation
