"""Hierarchical live groups (Evropeytsev et al. 2016): external group and internal groups.

- `settings`: settings and roles
- `origin`: end-to-end identity of messages; their positions in the external group
- `mesh_group`: protocol of an external peer or super peer, with the interface of a group
- `mesh`: node of the external group
- `star`: frames between a super peer and its internal peers
- `hub`: internal group at its super peer
- `super_peer`: node of a super peer: both groups
- `internal`: node of an internal peer
"""
