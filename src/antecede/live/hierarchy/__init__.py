"""A live group behind super peers (Evropeytsev et al. 2016): a mesh outside, a star in each group.

settings      what such a group is made with, and the roles in it
origin        whose a message is, end to end; places of messages in the mesh
mesh_group    an external or a super peer's protocol, as `Ordering` speaks with a group
mesh          the outer node: lanes of the mesh, what all groups inside have
star          frames between a super peer and those inside
hub           the super peer's side of its star
super_peer    mesh and star in one node
internal      a peer inside: it knows its super peer alone
"""
