// SPDX-License-Identifier: MIT
//
// A cubin is an ELF file; its section .nv.info is a list of attributes, of which one says a
// function's registers. The list is not documented; this is what ptxas 13.0 writes.

#include "common/emu/cudart/machine_code.h"

#include <elf.h>

#include <cstring>
#include <vector>

namespace gg::emu {
namespace {

constexpr uint8_t kSized = 4;         // an attribute followed by its size and so many bytes
constexpr uint8_t kRegisters = 0x2F;  // u32 symbol, u32 registers

class Elf {
 public:
  explicit Elf(const std::string& bytes) : bytes_(bytes) {
    Elf64_Ehdr header;
    if (!read(0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
    for (int i = 0; i < header.e_shnum; ++i) {
      Elf64_Shdr section;
      if (!read(header.e_shoff + uint64_t(i) * sizeof section, &section)) break;
      sections.push_back(section);
    }
    if (header.e_shstrndx < sections.size()) names_ = sections[header.e_shstrndx].sh_offset;
  }

  template <class T>
  bool read(uint64_t at, T* value) const {
    if (at > bytes_.size() || sizeof(T) > bytes_.size() - at) return false;
    std::memcpy(value, bytes_.data() + at, sizeof(T));
    return true;
  }
  std::string text(uint64_t at) const {
    const size_t end = at < bytes_.size() ? bytes_.find('\0', at) : std::string::npos;
    return end == std::string::npos ? "" : bytes_.substr(at, end - at);
  }
  std::string name(const Elf64_Shdr& section) const { return text(names_ + section.sh_name); }
  std::string symbol(uint32_t index) const {
    for (const Elf64_Shdr& section : sections) {
      Elf64_Sym symbol;
      if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
      if (!read(section.sh_offset + uint64_t(index) * sizeof symbol, &symbol)) continue;
      return text(sections[section.sh_link].sh_offset + symbol.st_name);
    }
    return "";
  }

  std::vector<Elf64_Shdr> sections;

 private:
  const std::string& bytes_;
  uint64_t names_ = 0;
};

}  // namespace

std::map<std::string, int> register_counts(const std::string& cubin) {
  std::map<std::string, int> counts;
  // Symbols may share the end of a name, but not so that all names are more than the file.
  size_t name_bytes = 0;
  const Elf elf(cubin);
  for (const Elf64_Shdr& section : elf.sections) {
    if (elf.name(section) != ".nv.info") continue;
    for (uint64_t at = 0; at < section.sh_size;) {
      struct {
        uint8_t format, attribute;
        uint16_t size;
      } head;
      uint32_t values[2];
      if (!elf.read(section.sh_offset + at, &head)) break;
      const uint64_t payload = section.sh_offset + at + sizeof head;
      if (head.format == kSized && head.attribute == kRegisters && elf.read(payload, &values) &&
          values[1] <= 255) {
        const std::string name = elf.symbol(values[0]);
        name_bytes += name.size();
        if (name_bytes > cubin.size()) return counts;
        counts[name] = int(values[1]);
      }
      at += sizeof head + (head.format == kSized ? head.size : 0);
    }
  }
  return counts;
}

}  // namespace gg::emu
