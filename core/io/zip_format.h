// Numbers of the ZIP format. Source: PKWARE, APPNOTE.TXT 6.3.10, sections 4.3 and 4.4.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halftone::io {

// The first four bytes of a record, and how many it has before its names and extra fields.
inline constexpr uint32_t kLocalMark = 0x04034B50, kEntryMark = 0x02014B50, kEndMark = 0x06054B50,
                          kZip64EndMark = 0x06064B50, kZip64LocatorMark = 0x07064B50;
inline constexpr size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kZip64EndBytes = 56,
                        kZip64LocatorBytes = 20;

inline constexpr uint16_t kStoredMethod = 0, kDeflatedMethod = 8;
inline constexpr uint16_t kEncryptedFlag = 1, kUtf8Flag = 1 << 11;

// Says that the number stands in a zip64 record.
inline constexpr uint64_t kFull16 = 0xFFFF, kFull32 = 0xFFFFFFFF;
inline constexpr uint16_t kZip64Extra = 1;  // kind of an extra field

}  // namespace halftone::io
